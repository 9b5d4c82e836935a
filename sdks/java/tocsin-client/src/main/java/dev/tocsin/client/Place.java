package dev.tocsin.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.UUID;

/** The timer that a request writes, and where it is stored. */
record Place(String namespace, String timerId) {
    private static final UUID DNS = UUID.fromString("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    private static final UUID TIMERS = uuid5(DNS, "timers.tocsin.dev");
    private static final SecureRandom RANDOM = new SecureRandom();

    UUID uuid() {
        return uuid5(TIMERS, namespace + "\0" + timerId);
    }

    /** The n-th of the namespace's shards, which follow one another. */
    int shard(int numShards, int totalShards) {
        long first = Integer.toUnsignedLong(ByteBuffer.wrap(sha1(namespace.getBytes(StandardCharsets.UTF_8))).getInt());
        long nth = (uuid().getMostSignificantBits() >>> 32) % numShards;
        return (int) ((first + nth) % totalShards);
    }

    private static UUID uuid5(UUID space, String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        ByteBuffer content = ByteBuffer.allocate(16 + bytes.length);
        content.putLong(space.getMostSignificantBits()).putLong(space.getLeastSignificantBits()).put(bytes);
        ByteBuffer hash = ByteBuffer.wrap(sha1(content.array()));
        return uuid(hash.getLong(), hash.getLong(), 5);
    }

    /** A UUID of version 7 (RFC 9562) of that time in Unix milliseconds: 74 of its bits are random. */
    static UUID uuid7(long nowMs) {
        return uuid(nowMs << 16 | RANDOM.nextInt(1 << 16), RANDOM.nextLong(), 7);
    }

    private static UUID uuid(long high, long low, long version) {
        return new UUID(high & ~0xF000L | version << 12, low & 0x3FFF_FFFF_FFFF_FFFFL | 0x8000_0000_0000_0000L);
    }

    private static byte[] sha1(byte[] content) {
        try {
            return MessageDigest.getInstance("SHA-1").digest(content);
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException("every Java platform has SHA-1", missing);
        }
    }
}
