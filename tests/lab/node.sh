# One node: init of its own namespaces. It waits for its interface, becomes a host, and ends when its input does.
set -e
name=$1 address=$2 folder=$3 lower=$4
shift 4
mount --make-rprivate /
hostname "$name"
mount -t overlay lab -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t overlay lab -o "lowerdir=${folder%/*}/sys/bus:sys/bus" sys/bus
mount --bind /dev dev
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777,size=1g shm dev/shm
mount -t tmpfs -o mode=755,size=32m run run
mount -t tmpfs -o mode=1777,size=32m tmp tmp
mkdir run/sshd
for pair; do
  [ ! -d "${pair%%=*}" ] || mkdir -p "${pair#*=}"
  mount --bind "${pair%%=*}" "${pair#*=}"
  mount -o remount,bind,ro "${pair#*=}" # it is this machine's own: nothing that runs here may change it
done
pivot_root . .
umount -l .
cd /
ulimit -l unlimited 2>&- || : # some sandboxes keep root from raising it
echo made
read -r _ || exit
ip -batch - <<END
link set lo up
addr add $address/24 dev eth0
link set eth0 up
route add default via 10.77.0.254
END
/usr/sbin/sshd -r -E /run/sshd.log # -r: no exec of its own for each login, which is half of what a login costs
until [ -s /run/sshd.pid ]; do sleep 0.005; done
echo ready
# A read of its own, no loop over children: bash, as init, reaps whatever is left to it.
while read -r _; do :; done
