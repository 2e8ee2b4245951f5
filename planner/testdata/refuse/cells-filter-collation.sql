SELECT count(*) FILTER (WHERE town ILIKE 'o%') FROM staff
