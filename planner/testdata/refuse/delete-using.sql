DELETE FROM names USING patients WHERE n = age
