SELECT to_json(e) FROM elderly e
