// SPDX-License-Identifier: Apache-2.0
import com.ericsson.otp.erlang.OtpErlangAtom;
import com.ericsson.otp.erlang.OtpErlangList;
import com.ericsson.otp.erlang.OtpErlangObject;
import com.ericsson.otp.erlang.OtpErlangPid;
import com.ericsson.otp.erlang.OtpErlangTuple;
import com.ericsson.otp.erlang.OtpMbox;
import com.ericsson.otp.erlang.OtpNode;
import com.ericsson.otp.erlang.OtpNodeStatus;

/**
 * A Java node, as a user of jinterface writes one. It does what c_node.c does.
 *
 * <pre>
 *   JavaNode call NAME COOKIE NODE
 *       connects to NODE, prints what erlang:node() is there, and ends
 *   JavaNode serve NAME COOKIE
 *       prints "ready", sends each {Pid, Term} that its mailbox `any' gets back to Pid as
 *       {echo, Term}, and ends when the connection does
 * </pre>
 *
 * With another answer than expected, or an error, the exit code is 1.
 */
public final class JavaNode {
    private static final long TIMEOUT_MS = 10000;

    private static OtpErlangAtom atom(String name) {
        return new OtpErlangAtom(name);
    }

    private static OtpErlangTuple tuple(OtpErlangObject... elements) {
        return new OtpErlangTuple(elements);
    }

    private static void call(OtpNode node, String target) throws Exception {
        OtpMbox mailbox = node.createMbox();
        if (!node.ping(target, TIMEOUT_MS))
            throw new Exception("no pong of " + target);
        // What the server rex takes for a call of rpc.
        mailbox.send("rex", target,
                     tuple(mailbox.self(), tuple(atom("call"), atom("erlang"), atom("node"),
                                                 new OtpErlangList(), atom("user"))));
        OtpErlangTuple answer = (OtpErlangTuple) mailbox.receive(TIMEOUT_MS);
        System.out.println(((OtpErlangAtom) answer.elementAt(1)).atomValue());
    }

    private static void serve(OtpNode node) throws Exception {
        OtpMbox mailbox = node.createMbox("any");
        node.registerStatusHandler(new OtpNodeStatus() {
            @Override
            public void remoteStatus(String peer, boolean isUp, Object info) {
                if (!isUp)
                    System.exit(0);
            }
        });
        System.out.println("ready");
        for (;;) {
            OtpErlangTuple message = (OtpErlangTuple) mailbox.receive();
            mailbox.send((OtpErlangPid) message.elementAt(0),
                         tuple(atom("echo"), message.elementAt(1)));
        }
    }

    public static void main(String[] arguments) {
        try {
            OtpNode node = new OtpNode(arguments[1], arguments[2]);
            if (arguments[0].equals("call"))
                call(node, arguments[3]);
            else
                serve(node);
            System.exit(0);
        } catch (Exception failure) {
            System.err.println("JavaNode: " + failure);
            System.exit(1);
        }
    }
}
