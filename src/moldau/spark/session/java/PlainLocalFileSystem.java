package moldau;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Local files for checkpoints. Hadoop's own class starts the program chmod for each file that it makes, and writes a
 * second file with a checksum: both cost more than the checkpoint of a small batch.
 */
public class PlainLocalFileSystem extends LocalFileSystem {
    public PlainLocalFileSystem() {
        super(new Raw());
        setWriteChecksum(false);
        setVerifyChecksum(false);
    }

    /** Sets permissions by a system call. */
    public static class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission mode) throws IOException {
            String text = mode.getUserAction().SYMBOL + mode.getGroupAction().SYMBOL + mode.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
        }
    }
}
