/* A thousand cheap SSH servers in one: any user, any key, and no shell. A script of ncheck's gets the greeting that a
   shell would give; every other command ends at once with status 0. So what a client costs is seen, and nothing else.

   cheap_server PORT HOST_KEY: listens on every loopback address, one process a connection. */
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* m=ncheck-0f3a;m=${m}99bc12;... */
static void greet(ssh_channel channel, const char *script) {
    char first[64], second[64], answer[1024];
    if (sscanf(script, "m=%63[^;];m=${m}%63[^;];", first, second) != 2) return;
    int length = snprintf(answer, sizeof answer,
        "\n%s%s hello\n%s%s command ncheck-command\n%s%s host cheap\n%s%s boot 0\n%s%s net net:[%d]\n%s%s uid 0\n"
        "%s%s end\n", first, second, first, second, first, second, first, second, first, second, (int)getpid(), first,
        second, first, second);
    ssh_channel_write(channel, answer, (uint32_t)length);
}

static void run(ssh_channel channel, const char *command) {
    char script[8192];
    int got = 0;
    if (strstr(command, "read -r line")) {
        while (got < (int)sizeof script - 1) {
            int n = ssh_channel_read(channel, script + got, (uint32_t)(sizeof script - 1 - (size_t)got), 0);
            if (n <= 0) break;
            got += n;
            if (memchr(script, '\n', (size_t)got)) break;
        }
        script[got] = 0;
        greet(channel, script);
    }
    ssh_channel_request_send_exit_status(channel, 0);
    ssh_channel_send_eof(channel);
    ssh_channel_close(channel);
}

static int authenticate(ssh_message message) {
    if (ssh_message_subtype(message) != SSH_AUTH_METHOD_PUBLICKEY) {
        ssh_message_auth_set_methods(message, SSH_AUTH_METHOD_PUBLICKEY);
        ssh_message_reply_default(message);
        return 0;
    }
    if (ssh_message_auth_publickey_state(message) == SSH_PUBLICKEY_STATE_NONE) {
        ssh_message_auth_reply_pk_ok_simple(message);
        return 0;
    }
    ssh_message_auth_reply_success(message, 0);
    return 1;
}

static void serve(ssh_session session) {
    ssh_channel channel = NULL;
    ssh_message message;
    if (ssh_handle_key_exchange(session) != SSH_OK) return;
    while ((message = ssh_message_get(session))) {
        int type = ssh_message_type(message);
        if (type == SSH_REQUEST_AUTH) {
            authenticate(message);
        } else if (type == SSH_REQUEST_CHANNEL_OPEN) {
            channel = ssh_message_channel_request_open_reply_accept(message);
        } else if (type == SSH_REQUEST_CHANNEL && channel && ssh_message_subtype(message) == SSH_CHANNEL_REQUEST_EXEC) {
            char *command = strdup(ssh_message_channel_request_command(message));
            ssh_message_channel_request_reply_success(message);
            run(channel, command);
            free(command);
        } else {
            ssh_message_reply_default(message);
        }
        ssh_message_free(message);
    }
}

int main(int count, char **words) {
    if (count != 3) return 2;
    signal(SIGCHLD, SIG_IGN);
    ssh_bind bind = ssh_bind_new();
    ssh_bind_options_set(bind, SSH_BIND_OPTIONS_BINDADDR, "0.0.0.0");
    ssh_bind_options_set(bind, SSH_BIND_OPTIONS_BINDPORT_STR, words[1]);
    ssh_bind_options_set(bind, SSH_BIND_OPTIONS_HOSTKEY, words[2]);
    ssh_bind_options_set(bind, SSH_BIND_OPTIONS_KEY_EXCHANGE, "curve25519-sha256,curve25519-sha256@libssh.org");
    if (ssh_bind_listen(bind) != SSH_OK) {
        fprintf(stderr, "%s\n", ssh_get_error(bind));
        return 1;
    }
    for (;;) {
        ssh_session session = ssh_new();
        if (ssh_bind_accept(bind, session) != SSH_OK) {
            ssh_free(session);
            continue;
        }
        if (fork() == 0) {
            serve(session);
            ssh_disconnect(session);
            _exit(0);
        }
        close(ssh_get_fd(session));
        ssh_free(session);
    }
}
