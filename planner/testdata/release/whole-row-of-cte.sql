WITH q AS (SELECT age FROM patients) SELECT q FROM q
