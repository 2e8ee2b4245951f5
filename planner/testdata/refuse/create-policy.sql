CREATE POLICY p ON patients USING (true)
