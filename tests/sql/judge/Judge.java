import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.time.temporal.TemporalAccessor;
import java.time.temporal.TemporalQueries;
import java.util.HexFormat;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Answers what the JDK's own classes make of an input: a line with an operation and its arguments in hex, a line back. */
public final class Judge {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            String[] given = new String[words.length - 1];
            for (int n = 0; n < given.length; n++) {
                given[n] = new String(HEX.parseHex(words[n + 1]), StandardCharsets.UTF_8);
            }
            try {
                out.println("+" + HEX.formatHex(answer(words[0], given).getBytes(StandardCharsets.UTF_8)));
            } catch (RuntimeException | StackOverflowError error) {
                out.println("-" + error.getClass().getSimpleName());
            }
        }
    }

    private static String answer(String operation, String[] given) {
        return switch (operation) {
            case "double_text" -> Double.toString(Double.longBitsToDouble(Long.parseUnsignedLong(given[0], 16)));
            case "double_parsed" -> Long.toHexString(Double.doubleToLongBits(Double.parseDouble(given[0])));
            case "decimal" -> decimal(given);
            case "decimal_cast" -> cast(new BigDecimal(given[0].trim()), given);
            case "decimal_of_double" -> cast(new BigDecimal(Double.parseDouble(given[0]),
                    new MathContext(Integer.parseInt(given[1]))), given);
            case "moment_text" -> formatter(given[0]).format(
                    Instant.ofEpochMilli(Long.parseLong(given[1])).atZone(ZoneId.of(given[2])));
            case "date_text" -> formatter(given[0]).format(LocalDate.ofEpochDay(Long.parseLong(given[1])));
            case "time_text" -> formatter(given[0]).format(LocalTime.ofNanoOfDay(Long.parseLong(given[1]) * 1_000_000));
            case "moment_parsed" -> moment(given);
            case "regex_found" -> found(given);
            case "regex_replaced" -> Pattern.compile(given[0]).matcher(given[1]).replaceAll(given[2]);
            case "regex_split" -> split(Pattern.compile(given[0]), given[1]);
            default -> throw new IllegalStateException(operation);
        };
    }

    private static String decimal(String[] given) {
        BigDecimal left = new BigDecimal(given[1]);
        BigDecimal right = new BigDecimal(given[2]);
        MathContext exact = new MathContext(Integer.parseInt(given[3]), RoundingMode.UNNECESSARY);
        BigDecimal result = switch (given[0]) {
            case "+" -> left.add(right, exact);
            case "-" -> left.subtract(right, exact);
            case "*" -> left.multiply(right, exact);
            case "/" -> left.divide(right, exact);
            default -> left.remainder(right, exact);
        };
        return result.setScale(Integer.parseInt(given[4]), RoundingMode.UNNECESSARY).toPlainString();
    }

    private static String cast(BigDecimal value, String[] given) {
        int precision = Integer.parseInt(given[1]);
        int scale = Integer.parseInt(given[2]);
        BigDecimal result = value.setScale(scale, RoundingMode.HALF_UP);
        if (result.precision() > precision) {
            throw new ArithmeticException("Numeric field overflow");
        }
        return result.toPlainString();
    }

    private static DateTimeFormatter formatter(String pattern) {
        return new DateTimeFormatterBuilder().parseCaseInsensitive().appendPattern(pattern).toFormatter(Locale.US);
    }

    /** What a text means: each field that it has replaces that of 1970-01-01T00:00 in its zone, or in the one given. */
    private static String moment(String[] given) {
        TemporalAccessor parsed = formatter(given[0]).parse(given[1]);
        ZoneId zone = parsed.query(TemporalQueries.zone());
        ZonedDateTime moment = ZonedDateTime.of(1970, 1, 1, 0, 0, 0, 0, zone == null ? ZoneId.of(given[2]) : zone);
        for (ChronoField field : ChronoField.values()) {
            if (parsed.isSupported(field)) {
                long value = parsed.getLong(field);
                if (field == ChronoField.DAY_OF_YEAR && value == 366) {
                    moment = moment.withYear(parsed.get(ChronoField.YEAR));
                }
                moment = moment.with(field, value);
            }
        }
        return Long.toString(moment.toInstant().toEpochMilli());
    }

    private static String split(Pattern pattern, String text) {
        return String.join("\u0001", pattern.matcher("").matches() ? pattern.split(text) : pattern.split(text, -1));
    }

    private static String found(String[] given) {
        Matcher matcher = Pattern.compile(given[0]).matcher(given[1]);
        StringBuilder all = new StringBuilder();
        while (matcher.find()) {
            for (int group = 0; group <= matcher.groupCount(); group++) {
                all.append(matcher.start(group)).append('-').append(matcher.end(group)).append(' ');
            }
            all.append('\n');
        }
        return all.toString();
    }
}
