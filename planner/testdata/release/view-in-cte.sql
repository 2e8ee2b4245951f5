WITH e AS (SELECT years, zip FROM elderly) SELECT years FROM e
