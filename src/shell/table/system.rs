//! Programs about the system, processes, the network and services.

use crate::shell::programs;
use crate::shell::row::{ProgramRow, Rule, row};

pub(super) const ROWS: &[ProgramRow] = &[
    row("true false : times", "", Rule::By(programs::words), "does nothing to files"),
    row("sleep usleep", "$ --help --version", Rule::Reads, "only waits"),
    row(
        "pgrep pidof",
        "$ -ALVacfhilnovwx -F: -G: -O: -P: -U: -d: -g: -r: -s: -t: -u: --delimiter= \
         --list-name --list-full --inverse --lightweight --count --full --pgroup= --group= \
         --ignore-case --newest --oldest --older= --parent= --session= --terminal= --euid= \
         --uid= --exact --pidfile= --logpidfile --runstates= --ignore-ancestors --cgroup= \
         --ns= --nslist= --help --version -qS",
        Rule::Reads,
        "only reads",
    ),
    row(
        "pstree",
        "$ -AGSTUVZacghlnpstu -C: -H: -N: --arguments --ascii --compact-not --color= \
         --show-pgids --vt100 --highlight-all= --highlight-pid= --long --numeric-sort \
         --ns-sort= --show-pids --show-parents --ns-changes --thread-names --hide-threads \
         --uid-changes --unicode --version --security-context",
        Rule::Reads,
        "only reads",
    ),
    row(
        "free",
        "$ -Vbcghklmstvw --bytes --kilo --mega --giga --tera --peta --kibi --mebi --gibi \
         --tebi --pebi --human --si --lohi --total --committed --seconds= --count= --wide \
         --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "vmstat iostat mpstat",
        "-DVadfhmnstwy -S: -p: --active --forks --slabs --one-header --stats --disk --disk-sum \
         --partition= --unit= --wide --timestamp --no-first --help --version -ckxz -P:",
        Rule::Reads,
        "only reads",
    ),
    row(
        "lscpu",
        "-BJVabchxy -C? -e? -p? -s: --all --online --bytes --caches? --offline --json \
         --extended? --parse? --sysroot= --hex --physical --output-all --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "lsblk",
        "-ADJMOPSVabdfhilmnprstyz -E: -I: -T? -e: -o: -w: -x: --noempty --discard --dedup= \
         --include= --json --merge --output-all --pairs --scsi --tree? --all --bytes --nodeps \
         --exclude= --fs --ascii --list --perms --noheadings --output= --paths --raw --inverse \
         --topology --width= --sort= --shell --zoned --sysroot= --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "uname arch whoami logname hostid nproc tty",
        "$ -aimnoprsv --all --kernel-name --nodename --kernel-release --kernel-version \
         --machine --processor --hardware-platform --operating-system --help --version -q \
         --all --ignore= --silent --quiet",
        Rule::Reads,
        "only reads",
    ),
    row(
        "id groups users",
        "$ -GZagnruz --context --group --groups --name --real --user --zero --help --version \
         -p",
        Rule::Reads,
        "only reads",
    ),
    row(
        "who w uptime",
        "$ -HTabdlmpqrstuw --all --boot --dead --heading --ips --login --lookup --process \
         --count --runlevel --short --time --mesg --users --message --writable --help \
         --version -Vfhio --no-header --no-current --from --old-style --ip-addr --pretty \
         --since",
        Rule::Reads,
        "only reads",
    ),
    row(
        "last",
        "-FRVadhiwx -f: -n: -p: -s: -t: --hostlast --dns --file= --fulltimes --ip --limit= \
         --nohostname --since= --until= --present= --fullnames --system --time-format= --help \
         --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "netstat",
        "-CFMNWZacegilnoprsv --route --interfaces --groups --statistics --masquerade --verbose \
         --wide --numeric --numeric-hosts --numeric-ports --numeric-users --symbolic --extend \
         --programs --timers --continuous --listening --all --fib --cache --context -tuwxbfL",
        Rule::Reads,
        "only reads",
    ),
    row(
        "ss",
        "-046HMNOSTVZabdehilmnoprstuwxz -A: -F: -f: --help --version --numeric --resolve --all \
         --listening --options --extended --memory --processes --threads --info --tipcinfo \
         --summary --tos --cgroup --bpf --context --contexts --net --ipv4 --ipv6 --packet \
         --tcp --mptcp --sctp --udp --dccp --raw --unix --tipc --vsock --xdp --family= \
         --no-header --oneline --inet-sockopt --query= --socket= --filter=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "getent",
        "-AVi -s: --no-addrconfig --no-idn --service= --help --usage --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "locale getconf",
        "-Vackmv --all-locales --charmaps --category-name --keyword-name --verbose --help \
         --usage --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "whereis which whatis apropos",
        "-Vadelrvw -C: -L: -M: -m: -s: --debug --verbose --exact --regex --wildcard --and \
         --long --config-file= --locale= --systems= --manpath= --sections= --section= --help \
         --usage --version -bpu",
        Rule::Reads,
        "only reads",
    ),
    row(
        "findmnt",
        "-ACDJPRUVabcefhiklmnrsuvxy -F: -M: -N: -O: -S: -T: -d: -o: -t: -w: --fstab --mtab \
         --kernel --timeout= --all --ascii --bytes --nocanonicalize --canonicalize --df \
         --direction= --evaluate --tab-file= --first-only --invert --json --list --task= \
         --noheadings --options= --output= --output-all --pairs --pseudo --shadowed \
         --submounts --raw --real --source= --target= --tree --mountpoint= --types= --uniq \
         --notruncate --nofsroot --shell --verify --verbose --vfs-all --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "lslocks lsns",
        "-JVbhinru -o: -p: --bytes --json --noinaccessible --noheadings --output= --output-all \
         --pid= --raw --notruncate --help --version -Wl -T: -t: --list --task= --nowrap \
         --type= --tree=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "ipcs",
        "-Vabchlmpqstu -i: --id= --help --version --shmems --queues --semaphores --all --time \
         --pid --creator --limits --summary --human --bytes",
        Rule::Reads,
        "only reads",
    ),
    row(
        "top",
        "-1HOSVbchis -E: -U: -d: -e: -n: -o: -p: -u: -w? --batch-mode --cmdline-toggle \
         --delay= --scale-summary-mem= --scale-task-mem= --threads-show --idle-toggle \
         --iterations= --list-fields --sort-override= --pid= --accum-time-toggle --secure-mode \
         --filter-any-user= --filter-only-euser= --width= --single-cpu-toggle --help --version \
         -l: -F",
        Rule::Reads,
        "only reads",
    ),
    row(
        "dmesg",
        "-HJPSTVWdehkprtuwx -F: -L? -f: -l: -s: --file= --facility= --human --json --kernel \
         --color? --level= --nopager --force-prefix --raw --noescape --syslog --buffer-size= \
         --userspace --follow --follow-new --decode --show-delta --reltime --ctime --notime \
         --time-format= --since= --until= --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "ps",
        "$ -AaeflHLTwmyjcdFMNrstuxvVZ -C: -G: -g: -p: -q: -U: -o: -O: -k: --pid= --ppid= --user= --User= \
         --group= --format= --sort= --forest --headers --no-headers --cols= --columns= --rows= --width= \
         --deselect --info --help --version",
        Rule::Reads,
        "only shows",
    ),
    row(
        "kill pkill killall",
        "$ -# -lLABCDEFGHIJKMNOQRSTUVWXYZefvxniqa -s: -u: -P: -t: -g: --signal= --list? --table --full \
         --exact --newest --oldest --user= --parent= --echo --wait --ignore-case --quiet --help --version",
        Rule::Reads,
        "only signals processes",
    ),
    row("fuser", "-aIcmMsuvlV46 -n:", Rule::Reads, "only lists"),
    row(
        "lsb_release",
        "-vidrcasht --id --release --codename --all --short",
        Rule::Reads,
        "only tells",
    ),
    row(
        "pkg-config pkgconf",
        "--modversion --cflags --cflags-only-I --cflags-only-other --libs --libs-only-l --libs-only-L --libs-only-other \
         --exists --atleast-version= --exact-version= --max-version= --variable= --print-variables --print-requires \
         --print-provides --list-all --list-package-names --static --print-errors --silence-errors --short-errors --version --help",
        Rule::Reads,
        "only tells",
    ),
    row("lsattr", "-RVadlpv", Rule::Reads, "only reads"),
    row("man info", "-kfwaW -s: -S: --where --all --apropos --whatis", Rule::Reads, "only shows"),
    row("printenv", "-0 --null --help --version", Rule::Reads, "only shows"),
    row(
        "tput clear reset stty tabs",
        "-ag -T: -F: --all --save --file= -x -V",
        Rule::Reads,
        "only sets the terminal",
    ),
    row("wait", "-nf", Rule::Reads, "only waits"),
    row("jobs", "-lnprs", Rule::Reads, "only lists jobs"),
    row("bg disown", "-ahr", Rule::Reads, "only continues a job"),
    row("ulimit", "-aSHcdfilmnpqrstuvx", Rule::Reads, "only sets limits"),
    row("umask dirs", "-Spclv -#", Rule::Reads, "only asks the shell"),
    row("help type", "-dmsafptP", Rule::Reads, "only tells about a command"),
    row("break continue return shift suspend caller", "-#", Rule::Reads, "only steers the script"),
    row("lsof", "-EOVZblPtNUaRXvhn -F? -i? -p: -u: -c: -d: -s?", Rule::Reads, "only lists"),
    row("lspci lsusb lsmod", "-vnktDm -s: -d:", Rule::Reads, "only lists"),
    row(
        "nvidia-smi",
        "-Lq -i: -d: -l: --query-gpu= --query-compute-apps= --format=",
        Rule::Reads,
        "only shows",
    ),
    row(
        "sw_vers",
        "@ -productName -productVersion -buildVersion --productName --productVersion --buildVersion",
        Rule::Reads,
        "only shows",
    ),
    row("ping ping6", "-qnv46 -c: -i: -w: -W: -s: -t: -I:", Rule::Reads, "only asks"),
    row("dig", "-46 -t: -p: -x: -q: -c:", Rule::Reads, "only asks"),
    row("nslookup", "@ -type: -query: -debug -timeout: -port:", Rule::Reads, "only asks"),
    row("host", "-avC46 -t: -W:", Rule::Reads, "only asks"),
    row("traceroute tracepath", "-nIT46b -m: -w: -q: -p:", Rule::Reads, "only asks"),
    row("whois", "-h: -p:", Rule::Reads, "only asks"),
    row("date gdate", "", Rule::By(programs::date), "tells or sets the time"),
    row(
        "hostname",
        "-AIabdfisy --alias --all-fqdns --domain --fqdn --long --ip-address --all-ip-addresses --short",
        Rule::ReadsAtMost(0),
        "sets the host's name",
    ),
    row("fg", "", Rule::Unknown, "continues a command we do not see"),
    row(
        "ip",
        "-4 -6 -0 -s -d -j -o -p -t -r -c -h -br -brief -stats -details -json -oneline -pretty -resolve -human @ ^",
        Rule::Sub(IP),
        "changes the network",
    ),
    row("ifconfig", "-as", Rule::ReadsAtMost(1), "changes the network"),
    row("nc ncat netcat", "-zvnutlkdN46CDr -w: -p: -s: -q: -i: %-h", Rule::Reads, "only connects"),
    row("curl", "", Rule::By(programs::curl), "fetches"),
    row("wget", "", Rule::By(programs::wget), "fetches to files"),
    row("ssh", "", Rule::By(programs::ssh), "runs a command elsewhere"),
    row("openssl", "^", Rule::Sub(OPENSSL), "may write keys and files"),
    row(
        "systemctl",
        "-alq -t: -p: -n: -o: --type= --property= --state= --lines= --output= --all --user --system \
         --no-pager --quiet --full --plain --no-legend --failed --value %--version ^",
        Rule::Sub(SYSTEMCTL),
        "changes services",
    ),
    row(
        "journalctl",
        "-aefklmqrx -b? -F: -g: -n? -o: -p: -S: -t: -u: -U: -c: --all --unit= --user-unit= --user --system \
         --since= --until= --lines? --follow --no-pager --no-tail --output= --priority= --grep= --boot? \
         --list-boots --disk-usage --dmesg --reverse --identifier= --no-hostname --utc --merge --pager-end \
         --catalog --quiet --field= --fields --case-sensitive? --cursor= --header --verify --full --no-full \
         --facility= --version --help",
        Rule::Reads,
        "shows the log",
    ),
    row("crontab", "%-l -u:", Rule::Destroys, "crontab replaces the table"),
    row("apt apt-get aptitude", "^", Rule::Sub(APT), "changes packages"),
    row("apt-cache", "^", Rule::Sub(APT), "writes its cache"),
    row(
        "dpkg dpkg-query",
        "-lLsSpcIWCV -f: --list --listfiles --status --search --print-architecture --get-selections \
         --print-avail --contents --info --show --showformat= --audit --verify --version --help",
        Rule::Reads,
        "only lists",
    ),
    row(
        "rpm",
        "%-q %--query -ailRcdpf --all --info --list --requires --provides --whatprovides --whatrequires --changelog --queryformat= --qf=",
        Rule::Destroys,
        "installs and removes packages",
    ),
    row("brew", "^", Rule::Sub(BREW), "changes packages"),
    row(
        "pg_isready pg_config",
        "-q -d: -h: -p: -t: -U: --bindir --version --libdir --includedir",
        Rule::Reads,
        "only asks",
    ),
    row("sqlite3 sqlite", "", Rule::By(programs::sqlite), "runs SQL on a file"),
    row("psql", "", Rule::By(programs::psql), "runs SQL"),
    row(
        "dropdb dropuser createdb createuser pg_restore mongorestore",
        "*",
        Rule::Destroys,
        "changes a database",
    ),
    row(
        "docker podman nerdctl",
        "-c: -l: -D --context= --log-level= %-v %--version ^",
        Rule::Sub(DOCKER),
        "may change containers and mounted files",
    ),
    row(
        "docker-compose podman-compose",
        "-f: -p: --file= --project-name= --profile= --env-file= %--version ^",
        Rule::Sub(COMPOSE),
        "may change containers and mounted files",
    ),
    row(
        "kubectl oc",
        "-n: -s: -v: --namespace= --context= --cluster= --user= ^",
        Rule::Sub(KUBECTL),
        "changes a cluster",
    ),
    row("terraform tofu", "-chdir: ^ @", Rule::Sub(TERRAFORM), "changes infrastructure"),
];

const IP: &[ProgramRow] = &[row(
    "a, addr, address, a show, addr show, address show, link, link show, l, r, route, route show, r show, route get, route list, neigh, n, neigh show, rule, rule show, maddr, netns list, addr list",
    "",
    Rule::ReadsAtMost(2),
    "changes the network",
)];

const OPENSSL: &[ProgramRow] = &[
    row("version", "@ -a -v -b -p -d", Rule::Reads, "only prints"),
    row("ciphers list", "@ -v -V -s -tls1_2 -tls1_3 -commands", Rule::Reads, "only prints"),
    row(
        "dgst md5 sha1 sha256 sha384 sha512",
        "@ -sha1 -sha256 -sha384 -sha512 -md5 -hex -binary -r -c -hmac:",
        Rule::Reads,
        "only prints",
    ),
    row(
        "x509 req crl",
        "@ -in: -inform: -noout -text -subject -issuer -dates -enddate -startdate -fingerprint -serial \
         -sha1 -sha256 -pubkey -modulus -hash -checkend: -ext: -email -ocsp_uri -verify",
        Rule::Reads,
        "only prints",
    ),
    row(
        "rsa pkey ec",
        "@ -in: -inform: -noout -text -check -modulus -pubin -pubout",
        Rule::Reads,
        "only prints",
    ),
    row("rand", "@ -hex -base64", Rule::Reads, "only prints"),
    row(
        "s_client",
        "@ -connect: -servername: -showcerts -brief -quiet -tls1_2 -tls1_3 -alpn: -status",
        Rule::Reads,
        "only connects",
    ),
];

const SYSTEMCTL: &[ProgramRow] = &[row(
    "status show list-units list-unit-files is-active is-enabled is-failed cat list-timers list-sockets list-dependencies list-jobs get-default is-system-running",
    "-alq -t: -p: -n: -o: --type= --property= --state= --lines= --output= --all --user --system --no-pager \
     --quiet --full --plain --no-legend --failed --value",
    Rule::Reads,
    "only asks",
)];

const APT: &[ProgramRow] = &[row(
    "list show search policy depends rdepends",
    "-a --installed --upgradable --all-versions --names-only",
    Rule::Reads,
    "only lists",
)];

const BREW: &[ProgramRow] = &[row(
    "list ls",
    "-1l --versions --formula --cask --full-name --pinned",
    Rule::Reads,
    "only lists",
)];

const DOCKER: &[ProgramRow] = &[
    row(
        "ps, images, container ls, container ps, container list, image ls, image list, network ls, network list, volume ls, volume list, stats, container stats, search, \
         service ls, service ps, node ls, node ps, stack ls, stack ps, stack services, secret ls, config ls, plugin ls, buildx ls",
        "-aqsl -f: -n: --all --quiet --size --latest --filter= --format= --last= --no-trunc --digests --no-stream --limit=",
        Rule::Reads,
        "only asks",
    ),
    row(
        "logs, container logs, service logs, events",
        "-ft -n: --follow --timestamps --tail= --since= --until= --details --filter= --format=",
        Rule::Reads,
        "only asks",
    ),
    row(
        "inspect, container inspect, image inspect, network inspect, volume inspect, info, version, system df, system info, context ls, context show, context inspect, service inspect, node inspect, manifest inspect, buildx version",
        "-sv -f: -q --pretty --quiet --format= --type= --size --verbose",
        Rule::Reads,
        "only asks",
    ),
    row(
        "top, port, diff, container top, container port, container diff, history, image history",
        "-q --no-trunc --format= --quiet",
        Rule::Reads,
        "only asks",
    ),
    row(
        "compose",
        "-f: -p: --file= --project-name= --profile= --env-file= --project-directory= --ansi= ^",
        Rule::Sub(COMPOSE),
        "may change containers and mounted files",
    ),
    row("run exec build pull push", "", Rule::Unknown, "runs or changes containers"),
    row(
        "rm, rmi, prune, system prune, volume rm, volume prune, image rm, image prune, container rm, container prune, builder prune, network prune, network rm",
        "*",
        Rule::Destroys,
        "removes containers, images or volumes",
    ),
];

const COMPOSE: &[ProgramRow] = &[
    row(
        "ps ls images top version port",
        "-aq --all --quiet --format= --services --filter=",
        Rule::Reads,
        "only asks",
    ),
    row(
        "config",
        "-q --services --volumes --networks --images --profiles --environment --variables --quiet --format= --hash= \
         --no-interpolate --no-normalize --no-path-resolution --no-consistency >-o: >--output=",
        Rule::Reads,
        "only shows",
    ),
    row(
        "logs",
        "-ft -n: --follow --timestamps --tail= --since= --until= --no-color --no-log-prefix --index=",
        Rule::Reads,
        "only asks",
    ),
];

const KUBECTL: &[ProgramRow] = &[
    row(
        "get, describe, top, explain, api-resources, api-versions, version, config view, config get-contexts, config current-context, config get-clusters, config get-users, rollout status, rollout history, cluster-info, events, auth can-i, auth whoami",
        "-Awq -L: -n: -o: -l: --all-namespaces --namespace= --output= --selector= --watch --show-labels \
         --no-headers --sort-by= --field-selector= --context= --minify --client --recursive \
         --ignore-not-found --show-kind --show-managed-fields --label-columns= --chunk-size= --watch-only --output-watch-events --template= \
         --allow-missing-template-keys --request-timeout= --raw --flatten --show-events --containers --sum --for= --types= --list --quiet \
         --subresource= --all --api-group= --namespaced --verbs= --timeout= --revision=",
        Rule::Reads,
        "only asks",
    ),
    row(
        "logs",
        "-fp -c: -n: -l: --follow --previous --container= --namespace= --selector= --tail= --since= \
         --timestamps --all-containers --prefix --context= --since-time= --limit-bytes= --max-log-requests= --ignore-errors --pod-running-timeout=",
        Rule::Reads,
        "only asks",
    ),
    row("delete drain scale apply replace patch edit", "*", Rule::Destroys, "changes a cluster"),
];

const TERRAFORM: &[ProgramRow] = &[
    row(
        "version, state list, workspace list, workspace show",
        "@ -json -no-color",
        Rule::ReadsAtMost(0),
        "changes infrastructure",
    ),
    // The others run the providers that lie in the project.
    row("output", "@ -json -no-color -raw", Rule::ReadsAtMost(1), "only shows"),
    row(
        "fmt",
        "@ -no-color -recursive -diff %-check -list: -write:",
        Rule::Destroys,
        "rewrites files",
    ),
    row("destroy apply import", "*", Rule::Destroys, "changes infrastructure"),
];
