MERGE INTO names n USING patients p ON n.n = p.age WHEN MATCHED THEN DELETE
