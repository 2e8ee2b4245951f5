SELECT a.code, b.code, count(*) FROM conditions a JOIN conditions b USING (patient_id) GROUP BY 1, 2
