SELECT rank() OVER (ORDER BY cost USING OPERATOR(public.<)) FROM patients
