SELECT zip, people FROM elderly_by_zip ORDER BY people DESC
