SELECT E'a\'b', 'it''s', $tag$ $x$ FROM $tag$, age FROM patients
