SELECT count(*) FROM staff a JOIN (SELECT 3 AS pay) b USING (pay);
