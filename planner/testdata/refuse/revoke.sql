REVOKE SELECT ON patients FROM public
