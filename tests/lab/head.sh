# The head host: init of the outer namespaces. Everything in the lab ends with it, and it ends when its input does.
set -e
folder=$1
shift
mount --make-rprivate /
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 lab "$folder"
mkdir "$folder/common" "$folder/bare" "$folder/sys" "$folder/head"
for name; do
  mkdir "$folder/$name"
  mount -t tmpfs -o mode=755,size=64m "$name" "$folder/$name"
done
hostname head
echo made
read -r _ || exit
# What a test writes on the head is seen by this lab alone: others may run beside it.
overlay() {
  mkdir -p "$folder/head/$1/upper" "$folder/head/$1/work"
  mount -t overlay lab -o "lowerdir=$2/$1,upperdir=$folder/head/$1/upper,workdir=$folder/head/$1/work" "/$1"
}
for place in etc root home; do overlay "$place" "$folder/common/$place:"; done
overlay usr/local ""
echo ready
while read -r _; do :; done
