package dev.tocsin.client;

import dev.tocsin.client.model.CreateTimer;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Between what scenarios write and the SDK's classes. */
final class Reflection {
    private Reflection() {}

    static Method method(Class<?> type, String name) {
        return Arrays.stream(type.getMethods()).filter(each -> each.getName().equals(name)).findFirst()
                .orElseThrow(() -> new Vectors.UnknownStep(type.getSimpleName() + "." + name));
    }

    static List<CreateTimer> timers(Json given) {
        return given.asList(each -> (CreateTimer) read(CreateTimer.class, each));
    }

    /** A value of the type, as an argument of the SDK. */
    static Object read(Type type, Json given) {
        if (type instanceof ParameterizedType generic) {
            Type inner = generic.getActualTypeArguments()[generic.getActualTypeArguments().length - 1];
            if (generic.getRawType() == Field.class) {
                // JSON's null is a value where any JSON is.
                return given.isNull() && inner != Json.class ? Field.ofNull() : Field.of(read(inner, given));
            }
            return generic.getRawType() == List.class
                    ? given.asList(each -> read(inner, each)) : given.asMap(each -> read(inner, each));
        }
        Class<?> plain = (Class<?>) type;
        if (plain == ListServiceCalls.class) {
            ListServiceCalls query = ListServiceCalls.all();
            for (Map.Entry<String, Json> each : given.asMap().entrySet()) {
                List<String> values = each.getValue().isArray() ? each.getValue().asList(Json::asString)
                        : List.of(each.getValue().isString() ? each.getValue().asString() : each.getValue().toString());
                query = each.getKey().equals("tenantId") ? query : query.with(each.getKey(), values);
            }
            return query;
        }
        return plain.isRecord() ? readRecord(plain, given) : scalar(plain, given);
    }

    private static Object readRecord(Class<?> type, Json given) {
        if (OpenEnum.class.isAssignableFrom(type)) {
            return make(type, given.asString());
        }
        boolean unencodable = given.has("payload") && given.get("payload").isObject()
                && given.get("payload").has("$unencodable");
        return unencodable ? readRecord(type, given.with("payload", tooDeep())) : make(type, Arrays.stream(type.getRecordComponents()).map(each -> {
            boolean optional = each.getType() == Field.class;
            return optional && !given.has(each.getName()) ? Field.absent() : read(each.getGenericType(),
                    given.get(each.getName()));
        }).toArray());
    }

    /** JSON that can be made but not written. */
    private static Json tooDeep() {
        Json deep = Json.NULL;
        for (int i = 0; i <= Json.DEPTH_MAX; i++) {
            deep = Json.array(deep);
        }
        return deep;
    }

    private static Object make(Class<?> type, Object... members) {
        try {
            return type.getDeclaredConstructors()[0].newInstance(members);
        } catch (ReflectiveOperationException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    private static Object scalar(Class<?> type, Json given) {
        if (type == String.class) {
            return given.asString();
        }
        if (type == Long.class || type == long.class) {
            return given.asLong();
        }
        if (type == Double.class || type == double.class) {
            return given.asDouble();
        }
        if (type == Instant.class) {
            return Values.toInstant(given);
        }
        if (type == Duration.class) {
            return Values.toDuration(given);
        }
        return type == Json.class ? given : (Object) given.asBoolean();
    }

    /** A result as JSON. */
    static Json write(Object value) {
        if (value == null || value instanceof byte[]) {
            return Json.NULL;
        }
        if (value instanceof Json json) {
            return json;
        }
        if (value instanceof OpenEnum known) {
            return known.toJson();
        }
        if (value instanceof ItemResult result && result.error() != null) {
            return Json.object().with("error", Driver.failure(result.error()));
        }
        if (value instanceof Record) {
            return writeRecord(value);
        }
        if (value instanceof List<?> list) {
            return Json.array(list, Reflection::write);
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Json> members = new LinkedHashMap<>();
            map.forEach((name, each) -> members.put((String) name, write(each)));
            return Json.object(members);
        }
        if (value instanceof Instant instant) {
            return Values.toJson(instant);
        }
        if (value instanceof Duration duration) {
            return Values.toJson(duration);
        }
        return value instanceof String text ? Json.of(text) : Json.parse(value.toString());
    }

    private static Json writeRecord(Object value) {
        Map<String, Json> members = new LinkedHashMap<>();
        for (RecordComponent each : value.getClass().getRecordComponents()) {
            try {
                members.put(each.getName(), write(each.getAccessor().invoke(value)));
            } catch (ReflectiveOperationException wrong) {
                throw new IllegalStateException(wrong);
            }
        }
        return Json.object(members);
    }
}
