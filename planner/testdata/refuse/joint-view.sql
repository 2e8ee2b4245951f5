SELECT count(*) FROM elderly e, drugs d WHERE e.zip = d.code
