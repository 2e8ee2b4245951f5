-- What epidemiologists ask of each patient, from the rows of other tables. Days and wards of
-- visits can be known to outsiders; costs cannot.
CALL tailor.define_hierarchy('ward', 'table',
    '{"paths": [["cardiology"], ["emergency"], ["internal medicine"], ["neurology"], '
    '["oncology"], ["orthopedics"], ["psychiatry"], ["pulmonology"], ["surgery"]]}');
CALL tailor.classify('public.visits', 'day', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.visits', 'ward', 'quasi_identifier', hierarchy => 'ward');
CALL tailor.activate('public.visits');

CALL tailor.define_dataset('public.readmissions', $$
    SELECT p.id, p.age, p.sex, p.zip,
           (SELECT count(*) FROM visits v WHERE v.patient_id = p.id) AS visits,
           (SELECT count(*) FROM visits v WHERE v.patient_id = p.id AND v.ward = 'emergency')
           AS emergencies,
           (SELECT count(DISTINCT v.ward) FROM visits v WHERE v.patient_id = p.id) AS wards,
           (SELECT count(*) FROM visits v WHERE v.patient_id = p.id AND v.day >= '2025-01-01')
           AS recent,
           (SELECT min(g.gap) FROM (
                SELECT v.day - lag(v.day) OVER (ORDER BY v.day) AS gap
                FROM visits v WHERE v.patient_id = p.id) g) AS days_to_readmission,
           EXISTS (SELECT FROM (
                SELECT v.day - lag(v.day) OVER (ORDER BY v.day) AS gap
                FROM visits v WHERE v.patient_id = p.id) g WHERE g.gap <= 30) AS readmitted
    FROM patients p $$, subject => 'id');
CALL tailor.classify('public.readmissions', 'id', 'direct_identifier');
CALL tailor.classify('public.readmissions', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.readmissions', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.readmissions', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('public.readmissions', 'visits', 'non_sensitive');
CALL tailor.classify('public.readmissions', 'emergencies', 'non_sensitive');
CALL tailor.classify('public.readmissions', 'wards', 'non_sensitive');
CALL tailor.classify('public.readmissions', 'recent', 'non_sensitive');
CALL tailor.classify('public.readmissions', 'days_to_readmission', 'sensitive');
CALL tailor.classify('public.readmissions', 'readmitted', 'sensitive');
CALL tailor.activate('public.readmissions');
