import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node of HDFS, until standard input ends. Arguments: a folder, and the port of WebHDFS. */
class MiniHdfs {
    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(args[0]).getAbsolutePath());
        conf.set("dfs.permissions.enabled", "false");
        MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf);
        try (MiniDFSCluster cluster = builder.numDataNodes(1).nameNodeHttpPort(Integer.parseInt(args[1])).build()) {
            cluster.waitActive();
            System.out.println("ready");
            System.in.read();
        }
    }
}
