#!/bin/sh
# Takes the keys from the volumes, and becomes the SSH server.
set -eu

# The host key is made at the first start on this host, and its fingerprint printed: docker logs train
host_key=/etc/ssh/keys/ssh_host_ed25519_key
[ -s "$host_key" ] || ssh-keygen -q -t ed25519 -N '' -C '' -f "$host_key"
ssh-keygen -l -f "$host_key.pub"
cp "$host_key.pub" /etc/ssh/ # where people look for it

# One key pair for the job: who has it may log in, and each node logs in to the others with it. These are copies
# because sshd and ssh refuse files that belong to another user.
mkdir -p /root/.ssh /run/sshd
chmod 700 /root/.ssh
install -m 600 /keys/id_ed25519 /root/.ssh/id_ed25519
install -m 600 /keys/id_ed25519.pub /root/.ssh/authorized_keys

# A login has the variables of sshd_config only, not those of the image: without PATH and LD_LIBRARY_PATH mpirun finds
# no orted on the other nodes, and Python no libnccl.
exec /usr/sbin/sshd -D -e -o "SetEnv=PATH=$PATH${LD_LIBRARY_PATH:+ LD_LIBRARY_PATH=$LD_LIBRARY_PATH}"
