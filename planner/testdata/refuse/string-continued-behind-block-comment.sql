SELECT count(*) FROM patients WHERE diagnosis = 'fl' /* PostgreSQL takes this for no blank */
'u'
