MERGE INTO patients p USING names n ON n.n = p.age WHEN MATCHED THEN UPDATE SET age = 1
