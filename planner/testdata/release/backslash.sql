SELECT age, 'a\b', E'c\\d\'', $$e\f$$, /* \ */ "zip" FROM patients WHERE zip ~ '^\d{2}' AND zip <> 'it''s \'
