SELECT version(); SELECT 'patients' AS probe
