package dev.tocsin.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.UUID;

/** The timer that a request writes, and where it is stored. */
record Place(String namespace, String timerId) {
    private static final SecureRandom RANDOM = new SecureRandom();

    UUID uuid() {
        return TimerUuids.ofTimer(namespace, timerId);
    }

    /** The n-th of the namespace's shards, which follow one another. */
    int shard(int numShards, int totalShards) {
        byte[] hash = TimerUuids.sha1(namespace.getBytes(StandardCharsets.UTF_8));
        long first = Integer.toUnsignedLong(ByteBuffer.wrap(hash).getInt());
        long nth = (uuid().getMostSignificantBits() >>> 32) % numShards;
        return (int) ((first + nth) % totalShards);
    }

    /** A UUID of version 7 (RFC 9562) of that time in Unix milliseconds: 74 of its bits are random. */
    static UUID uuid7(long nowMs) {
        return TimerUuids.uuid(nowMs << 16 | RANDOM.nextInt(1 << 16), RANDOM.nextLong(), 7);
    }
}
