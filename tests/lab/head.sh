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
for place in etc root home; do
  mkdir -p "$folder/head/$place/upper" "$folder/head/$place/work"
  mount -t overlay lab -o "lowerdir=$folder/common/$place:/$place,upperdir=$folder/head/$place/upper,workdir=$folder/head/$place/work" "/$place"
done
echo ready
while read -r _; do :; done
