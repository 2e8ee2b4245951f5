SELECT count(*) FROM staff WHERE unit = 'icu' AND hired > '2020-01-01';
