-- Turns that wait for approval, and that nobody holds.

-- NULL: it runs, or has ended.
ALTER TABLE turn ADD COLUMN suspended_at_ms REAL;
-- JSON: the calls that somebody was asked about, with the answers, in the order of asking. NULL: none.
ALTER TABLE turn ADD COLUMN approvals TEXT;
