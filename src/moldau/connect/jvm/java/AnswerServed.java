package moldau.connect;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Questions about a plugin of any kind, which does not run for that. */
final class AnswerServed extends Served {
    private final Object plugin;

    AnswerServed(Link link, ClassLoader loader, Object plugin) {
        super(link, loader);
        this.plugin = plugin;
    }

    @Override
    @SuppressWarnings("unchecked")
    Object call(String op, List<?> words) {
        switch (op) {
            case "describe": return Arrays.asList(
                plugin instanceof Connector ? ((Connector) plugin).taskClass().getName() : null, keys(definition()));
            case "validate": return validated(texts(words.get(1)));
            case "exactlyOnce": {
                Object found = ((SourceConnector) plugin).exactlyOnceSupport(texts(words.get(1)));
                return found == null ? null : found.toString();
            }
            case "boundaries": {
                Object found = ((SourceConnector) plugin).canDefineTransactionBoundaries(texts(words.get(1)));
                return found == null ? null : found.toString();
            }
            case "alterSource": {
                Map<Map<String, ?>, Map<String, ?>> offsets = new LinkedHashMap<>();
                for (Object one : (List<?>) words.get(2)) {
                    List<?> row = (List<?>) one;
                    offsets.put((Map<String, ?>) row.get(0), (Map<String, ?>) row.get(1));
                }
                return ((SourceConnector) plugin).alterOffsets(texts(words.get(1)), offsets);
            }
            case "alterSink": {
                Map<TopicPartition, Long> offsets = new HashMap<>();
                for (Object one : (List<?>) words.get(2)) {
                    List<?> row = (List<?>) one;
                    offsets.put(SinkServed.partition(row), (Long) row.get(2));
                }
                return ((SinkConnector) plugin).alterOffsets(texts(words.get(1)), offsets);
            }
            default: throw unknown(op);
        }
    }

    private ConfigDef definition() {
        ConfigDef found = plugin instanceof Connector ? ((Connector) plugin).config()
            : plugin instanceof Transformation ? ((Transformation<?>) plugin).config()
            : plugin instanceof Predicate ? ((Predicate<?>) plugin).config()
            : plugin instanceof HeaderConverter ? ((HeaderConverter) plugin).config()
            : ((Converter) plugin).config();
        return found == null ? new ConfigDef() : found;
    }

    private static List<Object> keys(ConfigDef definition) {
        List<Object> made = new ArrayList<>();
        for (ConfigKey one : definition.configKeys().values())
            made.add(Arrays.asList(one.name, one.type.name(), !one.hasDefault(),
                one.hasDefault() ? ConfigDef.convertToString(one.defaultValue, one.type) : null,
                one.importance.name(), one.documentation, one.group, one.orderInGroup, one.width.name(),
                one.displayName, one.dependents, one.internalConfig));
        return made;
    }

    private List<Object> validated(Map<String, String> config) {
        Map<String, ConfigKey> keys = definition().configKeys();
        List<ConfigValue> found = plugin instanceof Connector ? ((Connector) plugin).validate(config).configValues()
            : definition().validate(config);
        List<Object> made = new ArrayList<>();
        for (ConfigValue one : found) {
            ConfigDef.Type type = keys.containsKey(one.name()) ? keys.get(one.name()).type : null;
            List<Object> recommended = new ArrayList<>();
            ConfigDef.Type each = type == ConfigDef.Type.LIST ? ConfigDef.Type.STRING : type;
            for (Object value : one.recommendedValues()) recommended.add(ConfigDef.convertToString(value, each));
            made.add(Arrays.asList(one.name(), ConfigDef.convertToString(one.value(), type), recommended,
                one.errorMessages(), one.visible()));
        }
        return made;
    }
}
