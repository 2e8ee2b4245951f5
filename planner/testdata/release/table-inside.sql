SELECT t.age FROM (TABLE patients) t
