SELECT count(*) FROM staff GROUP BY tailor_label_2
