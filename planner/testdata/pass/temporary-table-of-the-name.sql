CREATE TEMP TABLE lab (age int, result text)
