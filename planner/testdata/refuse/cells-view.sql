SELECT count(*) FROM well_paid
