SELECT a, b FROM elderly AS e (a, b)
