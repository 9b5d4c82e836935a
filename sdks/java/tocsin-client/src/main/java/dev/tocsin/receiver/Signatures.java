package dev.tocsin.receiver;

import dev.tocsin.client.error.InvalidArgumentException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Signatures as Standard Webhooks specifies them. */
public final class Signatures {
    /** Of the header {@code webhook-timestamp}. */
    static final String TIMESTAMP = "[0-9]{1,12}";
    /** More parts than that are refused unread: two keys and a margin. */
    private static final int PARTS_MAX = 10;

    private Signatures() {}

    /**
     * Signs a callback: for tests of receivers.
     *
     * @param secrets of the namespace
     * @param webhookId the header {@code webhook-id}
     * @param timestampSeconds the header {@code webhook-timestamp}
     * @param body the request's body
     * @return the header {@code webhook-signature}: a signature for each secret, separated by spaces
     * @throws InvalidArgumentException if a secret is not valid
     */
    public static String sign(List<String> secrets, String webhookId, long timestampSeconds, byte[] body) {
        return String.join(
                " ", secrets.stream().map(each -> signature(keyOf(each), webhookId, timestampSeconds, body)).toList());
    }

    static byte[] keyOf(String secret) {
        byte[] key;
        try {
            key = Base64.getDecoder().decode(secret.startsWith("whsec_") ? secret.substring(6) : secret);
        } catch (IllegalArgumentException wrong) {
            key = new byte[0];
        }
        if (key.length == 0) {
            throw new InvalidArgumentException(
                    "a signing secret is not valid; it is whsec_ and base64, as `tocsin namespaces` printed it");
        }
        return key;
    }

    /** The signatures in a header; empty: more than are worth a look. */
    static Optional<List<String>> in(String header) {
        String[] parts = header.split(" ", PARTS_MAX + 1);
        return parts.length > PARTS_MAX ? Optional.empty() : Optional.of(List.of(parts));
    }

    /** Whether one of the given signatures is of one of the keys. Compares all of them, in constant time. */
    static boolean isSigned(
            List<byte[]> keys, String webhookId, long timestampSeconds, byte[] body, List<String> signatures) {
        List<byte[]> wanted = new ArrayList<>();
        keys.forEach(key -> wanted.add(signature(key, webhookId, timestampSeconds, body).getBytes(StandardCharsets.UTF_8)));
        boolean signed = false;
        for (String given : signatures) {
            for (byte[] each : wanted) {
                signed |= given.startsWith("v1,") && MessageDigest.isEqual(each, given.getBytes(StandardCharsets.UTF_8));
            }
        }
        return signed;
    }

    private static String signature(byte[] key, String webhookId, long timestampSeconds, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            mac.update((webhookId + "." + timestampSeconds + ".").getBytes(StandardCharsets.UTF_8));
            return "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("every Java platform has HmacSHA256", missing);
        }
    }
}
