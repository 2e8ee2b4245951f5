SELECT a FROM patients AS p (a, b)
