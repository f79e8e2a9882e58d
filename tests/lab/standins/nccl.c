/* Stands in for libnccl.so.2 where its version and its choice of address are asked; built with -DCODE=21903
   -DTEXT='"2.19.3+cuda12.3"'. It chooses as NCCL does, by NCCL_SOCKET_IFNAME and among IPv4 addresses, and reads the
   variable from /etc/nccl.conf, too. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const told = "NCCL version " TEXT;

int ncclGetVersion(int *version) {
    if (!version) return 4;
    *version = CODE;
    return 0;
}

const char *ncclGetLastError(void *comm) {
    (void)comm;
    return "Bootstrap : no socket interface found";
}

static int listed(const char *name, const char *list, int exact) {
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length && !strncmp(name, list, length) && (!exact || !name[length])) return 1;
        list += length + (list[length] == ',');
    }
    return 0;
}

static int find(const char *list, struct sockaddr_in *found) {
    int negated = *list == '^', exact;
    list += negated;
    exact = *list == '=';
    list += exact;
    struct ifaddrs *all, *one;
    if (getifaddrs(&all)) return 0;
    for (one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
        if (CODE >= 22803 && !(one->ifa_flags & IFF_RUNNING)) continue;
        if (listed(one->ifa_name, list, exact) == negated) continue;
        memcpy(found, one->ifa_addr, sizeof *found);
        break;
    }
    freeifaddrs(all);
    return one != NULL;
}

static void read_configuration(void) {
    char line[256];
    FILE *file = fopen("/etc/nccl.conf", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, '=');
        if (*line == '#' || !value) continue;
        *value++ = 0;
        setenv(line, value, 0);
    }
    if (file) fclose(file);
}

int ncclGetUniqueId(char *name) {
    const char *rules[] = {"ib", "^docker,lo", "docker", "lo"}, *list;
    struct sockaddr_in found;
    int ok = 0;
    read_configuration();
    list = getenv("NCCL_SOCKET_IFNAME");
    if (list && strlen(list) > 1) ok = find(list, &found);
    else for (int rule = 0; rule < 4 && !ok; rule++) ok = find(rules[rule], &found);
    if (!ok) return 5;
    found.sin_port = htons(40000);
    memset(name, 0, 128);
    memset(name, 7, 8);
    memcpy(name + 8, &found, sizeof found);
    return 0;
}
