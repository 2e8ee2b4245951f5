SELECT j FROM patients p, LATERAL to_json(p) j
