package dev.tocsin.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.UUID;

/** The UUIDs that the server derives from names: {@code Timer.timerUuid}, and the hexadecimal digits of a webhook-id. */
public final class TimerUuids {
    private static final UUID DNS = UUID.fromString("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    private static final UUID TIMERS = uuid5(DNS, "timers.tocsin.dev");

    private TimerUuids() {}

    /**
     * The UUID of a timer.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @return a UUID of version 5
     */
    public static UUID ofTimer(String namespace, String timerId) {
        return uuid5(TIMERS, namespace + "\0" + timerId);
    }

    /**
     * The UUID of a schedule.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return a UUID of version 5
     */
    public static UUID ofSchedule(String namespace, String scheduleId) {
        return uuid5(TIMERS, namespace + "\0schedule\0" + scheduleId);
    }

    private static UUID uuid5(UUID space, String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        ByteBuffer content = ByteBuffer.allocate(16 + bytes.length);
        content.putLong(space.getMostSignificantBits()).putLong(space.getLeastSignificantBits()).put(bytes);
        ByteBuffer hash = ByteBuffer.wrap(sha1(content.array()));
        return uuid(hash.getLong(), hash.getLong(), 5);
    }

    static UUID uuid(long high, long low, long version) {
        return new UUID(high & ~0xF000L | version << 12, low & 0x3FFF_FFFF_FFFF_FFFFL | 0x8000_0000_0000_0000L);
    }

    static byte[] sha1(byte[] content) {
        try {
            return MessageDigest.getInstance("SHA-1").digest(content);
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException("every Java platform has SHA-1", missing);
        }
    }
}
