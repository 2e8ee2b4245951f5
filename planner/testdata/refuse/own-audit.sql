SELECT * FROM tailor.audit_log
