SELECT born, years, sex FROM patients AS p (born, years) WHERE years > 30
