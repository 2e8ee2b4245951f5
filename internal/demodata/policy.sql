-- The demo's policy, as a database administrator would type it.
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
CALL tailor.define_hierarchy('day', 'date',
    '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
CALL tailor.define_hierarchy('race', 'table',
    '{"paths": [["asian"], ["black"], ["hispanic"], ["native"], ["white"]]}');

CALL tailor.protect('public.patients', subject => 'id', k => 5);
CALL tailor.classify('public.patients', 'id', 'direct_identifier');
CALL tailor.classify('public.patients', 'name', 'direct_identifier');
CALL tailor.classify('public.patients', 'ssn', 'direct_identifier');
CALL tailor.classify('public.patients', 'birth_date', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.patients', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.patients', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.patients', 'race', 'quasi_identifier', hierarchy => 'race');
CALL tailor.classify('public.patients', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('public.patients', 'ward', 'non_sensitive');
CALL tailor.classify('public.patients', 'diagnosis', 'sensitive');
CALL tailor.classify('public.patients', 'cost', 'non_sensitive');
CALL tailor.require('public.patients', 'l_diversity', column_name => 'diagnosis', parameter => 2);

CALL tailor.protect('public.visits', subject => 'patient_id', k => 5);
CALL tailor.classify('public.visits', 'cost', 'non_sensitive');
-- What a visit has cost is not what the patients' table says; the ward, which is, stays hidden.
CALL tailor.shared_fact('public.visits', 'cost', 'accepted');

CALL tailor.protect('public.diagnoses', subject => 'patient_id', k => 5);
CALL tailor.classify('public.diagnoses', 'patient_id', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('public.diagnoses', column_name => 'code', m => 2);
CALL tailor.joint('public.diagnoses', ARRAY['sex', 'age', 'zip']);

CALL tailor.grant_reader('researcher');
CALL tailor.activate('public.patients');
CALL tailor.activate('public.visits');
CALL tailor.activate('public.diagnoses');
