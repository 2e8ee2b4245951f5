SELECT count(*) FROM ONLY staff
