-- priority: higher first; grp: sweep.12, submitted together, 12 being the first of them; point: what the job's
-- matrix says for this run; resume: `retry --resume`; reopened: by `retry`, a run's timeout counts from there;
-- sealed: its manifest is complete; bytes: of its folder, when it was sealed
ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN grp TEXT;
ALTER TABLE runs ADD COLUMN point TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN resume INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN reopened REAL;
ALTER TABLE runs ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN bytes INTEGER;
-- base: attempts before the last `retry`
ALTER TABLE steps ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET sealed = 1 WHERE ended IS NOT NULL;
CREATE INDEX unsealed ON runs(id) WHERE sealed = 0;
CREATE INDEX groups ON runs(grp) WHERE grp IS NOT NULL;
PRAGMA user_version = 2;
