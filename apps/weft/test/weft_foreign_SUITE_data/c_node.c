/* SPDX-License-Identifier: Apache-2.0
 *
 * A C node, as a user of ei writes one: it connects once, or accepts once, and what comes first on
 * the connection is the answer.
 *
 *   c_node call NAME COOKIE NODE
 *       connects to NODE, prints what erlang:node() is there, and ends
 *   c_node serve NAME COOKIE
 *       prints "ready", accepts one connection, sends each {Pid, Term} back to Pid as {echo, Term},
 *       and ends with the connection
 *
 * With another answer than expected, or an error, the exit code is 1.
 */
#include <arpa/inet.h>
#include <ei.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_MS 10000

static void fail(const char *what)
{
    fprintf(stderr, "c_node: %s failed, erl_errno %d\n", what, erl_errno);
    exit(1);
}

static void call(ei_cnode *node, char *target)
{
    char name[MAXATOMLEN_UTF8];
    int index = 0;
    int fd = ei_connect_tmo(node, target, TIMEOUT_MS);
    ei_x_buff arguments, result;

    if (fd < 0)
        fail("ei_connect");
    ei_x_new(&arguments);
    ei_x_encode_empty_list(&arguments);
    ei_x_new(&result);
    if (ei_rpc(node, fd, "erlang", "node", arguments.buff, arguments.index, &result) < 0)
        fail("ei_rpc");
    if (ei_decode_atom(result.buff, &index, name) < 0)
        fail("ei_decode_atom");
    printf("%s\n", name);
    close(fd);
}

static int listening(ei_cnode *node)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 5) < 0
        || getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        fail("listen");
    if (ei_publish(node, ntohs(address.sin_port)) < 0)
        fail("ei_publish");
    return fd;
}

static void echo(ei_cnode *node, int fd, ei_x_buff *in)
{
    erlang_pid to;
    ei_x_buff out;
    int version, arity, index = 0;

    if (ei_decode_version(in->buff, &index, &version) < 0
        || ei_decode_tuple_header(in->buff, &index, &arity) < 0 || arity != 2
        || ei_decode_pid(in->buff, &index, &to) < 0)
        fail("decoding {Pid, Term}");
    ei_x_new_with_version(&out);
    ei_x_encode_tuple_header(&out, 2);
    ei_x_encode_atom(&out, "echo");
    ei_x_append_buf(&out, in->buff + index, in->index - index);
    if (ei_send(fd, &to, out.buff, out.index) < 0)
        fail("ei_send");
    ei_x_free(&out);
}

static void serve(ei_cnode *node)
{
    ErlConnect peer;
    erlang_msg message;
    ei_x_buff in;
    int fd, got, listener = listening(node);

    printf("ready\n");
    fflush(stdout);
    fd = ei_accept_tmo(node, listener, &peer, TIMEOUT_MS);
    if (fd < 0)
        fail("ei_accept");
    ei_x_new(&in);
    for (;;) {
        in.index = 0;
        got = ei_xreceive_msg(fd, &message, &in);
        if (got == ERL_ERROR)
            return;
        if (got == ERL_MSG && (message.msgtype == ERL_SEND || message.msgtype == ERL_REG_SEND))
            echo(node, fd, &in);
    }
}

int main(int argc, char **argv)
{
    ei_cnode node;

    if (argc < 4 || ei_init() != 0)
        fail("starting");
    if (ei_connect_init(&node, argv[2], argv[3], getpid() & 3) < 0)
        fail("ei_connect_init");
    if (strcmp(argv[1], "call") == 0 && argc == 5)
        call(&node, argv[4]);
    else if (strcmp(argv[1], "serve") == 0 && argc == 4)
        serve(&node);
    else
        fail("reading the arguments");
    return 0;
}
