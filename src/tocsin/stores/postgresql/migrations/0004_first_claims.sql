-- When several nodes make a shard's first claim at the same time, one succeeds and the others get NULL, whichever of the two
-- unique indexes on the shard's row detects the conflict first.
CREATE OR REPLACE FUNCTION claim_shard(shard integer, expected bigint, claimant bytea, standing bytea, standing_counter bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF standing IS NOT NULL THEN
    PERFORM 1 FROM members WHERE member_incarnation = standing AND member_counter = standing_counter FOR SHARE;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  IF expected = 0 THEN
    INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, shard_version, shard_owner)
    VALUES (shard, 1, 0, '00000000-0000-0000-0000-000000000000', 1, claimant)
    ON CONFLICT DO NOTHING;
  ELSE
    UPDATE timers SET shard_version = shard_version + 1, shard_owner = claimant
    WHERE row_type = 1 AND shard_id = shard AND shard_version = expected;
  END IF;
  RETURN CASE WHEN FOUND THEN expected + 1 END;
END
$$;
