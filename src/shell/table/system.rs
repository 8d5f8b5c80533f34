//! Programs about the system, processes, the network and services.

use super::{Row, Rule, looks, row};
use crate::shell::programs;

pub(super) const ROWS: &[Row] = &[
    row(
        "man info",
        "* ~-P: ~--pager= ~-H? ~--html? ~-o: ~--output= ~-C:",
        Rule::Reads,
        "only shows",
    ),
    looks(
        "true false : sleep usleep whoami id groups users who w last lastlog uptime uname arch tty logname",
    ),
    looks(
        "ps pgrep pidof pstree free vmstat iostat mpstat lscpu lsblk lsusb lspci lsmod lshw dmidecode sar",
    ),
    looks(
        "netstat ss ping ping6 dig nslookup host traceroute tracepath mtr whois getent locale getconf",
    ),
    looks("printenv which whereis whatis apropos tput clear reset stty kill pkill killall"),
    looks(
        "findmnt blkid lslocks lsns lsof fuser ipcs nvidia-smi sensors sw_vers hostid modinfo getenforce arp cpuid acpi",
    ),
    looks(
        "wait jobs bg disown times ulimit umask suspend caller dirs compgen help type logger wall sync pmap",
    ),
    looks(
        "break continue return shift notify-send say xdpyinfo xrandr glxinfo infocmp tabs toe localectl timedatectl",
    ),
    row(
        "date gdate",
        "-uRI? -d: -f: -r: -j -n --date= --file= --iso-8601? --rfc-3339= --rfc-email --rfc-822 --utc --universal --reference= --debug --help --version -v:",
        Rule::Reads,
        "only tells the time",
    ),
    row("hostname", "* ~-F: ~--file= ~-b", Rule::ReadsAtMost(0), "sets the host's name"),
    row("fg", "*", Rule::Unknown, "continues a command we do not see"),
    row("top htop btop", "* -d: -n: -p: -u: -U: -o: -s: -l:", Rule::Reads, "only shows"),
    row("dmesg", "* ~-C ~--clear ~-c ~--read-clear", Rule::Reads, "only shows"),
    row("ip", "-46brsdjopt0 -c? -br -brief -s -o -j -d @ ^", Rule::Sub(IP), "changes the network"),
    row("ifconfig route", "*", Rule::ReadsAtMost(1), "changes the network"),
    row("nc ncat netcat", "", Rule::By(programs::netcat), "connects"),
    row("curl", "", Rule::By(programs::curl), "fetches"),
    row("wget", "", Rule::By(programs::wget), "fetches to files"),
    row(
        "http https xh",
        "* >-o: >--output= ~-d ~--download ~--session=",
        Rule::Reads,
        "prints an answer",
    ),
    row("ssh", "", Rule::By(programs::ssh), "runs a command elsewhere"),
    row("openssl", "^", Rule::Sub(OPENSSL), "may write keys and files"),
    row(
        "gpg gpg2",
        "--list-keys --list-secret-keys --list-sigs --list-packets --fingerprint -kK --verify --with-colons --keyid-format= --batch --no-tty -q --quiet --list-public-keys --with-fingerprint --with-subkey-fingerprint",
        Rule::Reads,
        "only lists or verifies",
    ),
    row(
        "systemctl",
        "* -H: -M: -t: -p: -n: -o: -P: --type= --property= --state= --lines= --output= ^",
        Rule::Sub(SYSTEMCTL),
        "changes services",
    ),
    row("journalctl", "", Rule::By(programs::journalctl), "shows the log, or trims it"),
    row("service", "", Rule::Sub(&[]), "changes services"),
    row(
        "launchctl",
        "^",
        Rule::Sub(&[looks("list print print-cache version help")]),
        "changes services",
    ),
    row("crontab", "%-l -u:", Rule::Destroys, "crontab replaces the table"),
    row(
        "apt apt-get aptitude",
        "^",
        Rule::Sub(&[looks("list show search policy depends rdepends changelog")]),
        "changes packages",
    ),
    row("apt-cache dpkg-query", "*", Rule::Reads, "only reads"),
    row(
        "dpkg",
        "-lLsSpcI --list --listfiles --status --search --print-architecture --get-selections --print-avail --contents --info --audit --version --help -C -V --verify",
        Rule::Reads,
        "only lists",
    ),
    row(
        "rpm",
        "-qailRVcdpf --query --all --info --list --requires --provides --whatprovides --whatrequires --changelog --verify --queryformat= --qf= --eval=",
        Rule::Reads,
        "only asks",
    ),
    row("pacman", "-Qqielsomktudcgp -Si -Ss", Rule::Reads, "only asks"),
    row(
        "apk",
        "^",
        Rule::Sub(&[looks("info list search policy stats version dot")]),
        "changes packages",
    ),
    row(
        "dnf yum zypper",
        "-qyC ^",
        Rule::Sub(&[looks(
            "list info search repolist provides whatprovides deplist repoquery history check-update se if lr",
        )]),
        "changes packages",
    ),
    row(
        "snap flatpak",
        "^",
        Rule::Sub(&[looks(
            "list info find search version connections services interfaces remotes",
        )]),
        "changes packages",
    ),
    row(
        "brew",
        "^",
        Rule::Sub(&[looks(
            "list ls info search outdated config doctor deps uses leaves desc home cat formulae casks log options --version --prefix --cellar --repository --cache -v",
        )]),
        "changes packages",
    ),
    row(
        "port",
        "^",
        Rule::Sub(&[looks("installed search info list contents deps outdated variants")]),
        "changes packages",
    ),
    row("nix nix-store nix-env", "*", Rule::Unknown, "may build and remove"),
    row("sqlite3 sqlite", "", Rule::By(programs::sqlite), "runs SQL on a file"),
    row("psql", "", Rule::By(programs::psql), "runs SQL"),
    row("mysql mariadb", "", Rule::By(programs::mysql), "runs SQL"),
    row("redis-cli valkey-cli", "", Rule::By(programs::redis), "runs a command on a store"),
    row("pg_isready pg_config mysql_config", "*", Rule::Reads, "only asks"),
    row(
        "dropdb dropuser createdb createuser pg_restore mongorestore",
        "*",
        Rule::Destroys,
        "changes a database",
    ),
    row(
        "docker podman nerdctl",
        "-c: -H: -l: -D --context= --host= --log-level= --config= %-v %--version ^",
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
        "kubectl oc k",
        "-n: -s: -v: --namespace= --context= --kubeconfig= --cluster= --user= ^",
        Rule::Sub(KUBECTL),
        "changes a cluster",
    ),
    row(
        "helm",
        "-n: --namespace= --kube-context= --kubeconfig= ^",
        Rule::Sub(&[
            looks("list ls status history get search show version env inspect lint verify"),
            row("template", "* ~--output-dir= ~--post-renderer=", Rule::Reads, "only prints"),
        ]),
        "changes a cluster",
    ),
    row(
        "minikube kind k3d",
        "^",
        Rule::Sub(&[looks("status ip version get list profile")]),
        "changes a cluster",
    ),
    row("terraform tofu", "-chdir: ^ @", Rule::Sub(TERRAFORM), "changes infrastructure"),
    row("aws", "", Rule::By(programs::aws), "may change an account or download"),
    row("gcloud az", "", Rule::By(programs::gcloud), "may change an account"),
    row(
        "gsutil",
        "-m -q ^",
        Rule::Sub(&[looks("ls du cat stat version hash")]),
        "changes a bucket",
    ),
    row(
        "vagrant",
        "^",
        Rule::Sub(&[looks("status global-status version port ssh-config")]),
        "changes machines",
    ),
    row("ansible-playbook", "*", Rule::Unknown, "runs tasks"),
    row(
        "tmux screen",
        "^",
        Rule::Sub(&[looks(
            "ls list-sessions lsw list-windows lsp list-panes display-message show-options -V -ls -list has-session",
        )]),
        "runs commands elsewhere",
    ),
];

const IP: &[Row] = &[
    looks(
        "a, addr, address, a show, addr show, address show, link, link show, l, r, route, route show, r show, route get, route list, neigh, n, neigh show, rule, rule show, -V, maddr, netns list, addr list",
    ),
    row(
        "addr add, addr del, link set, link delete, route add, route del, link add, address add, addr flush, route flush",
        "*",
        Rule::Unknown,
        "changes the network",
    ),
];

const OPENSSL: &[Row] = &[
    looks("version help list ciphers errstr asn1parse prime speed passwd"),
    row(
        "dgst md5 sha1 sha256 sha512 sha384 x509 verify s_client rand enc rsa pkey ec crl pkcs12 pkcs7 req pkcs8 base64 storeutl ocsp",
        "@ * >-out: >-keyout: ~-writerand: ~-CAcreateserial ~-CAserial: ~-engine: ~-provider: ~-config: ~-sess_out: ~-keylogfile: ~-msgfile: ~-respout: ~-reqout:",
        Rule::Reads,
        "only prints",
    ),
];

const SYSTEMCTL: &[Row] = &[looks(
    "status show list-units list-unit-files is-active is-enabled is-failed cat list-timers list-sockets list-dependencies list-jobs list-machines get-default is-system-running help show-environment",
)];

const DOCKER: &[Row] = &[
    looks(
        "ps images logs inspect info version stats top port diff history search events help \
           ",
    ),
    looks(
        "image ls, image list, image inspect, image history, container ls, container list, container ps, container inspect, container logs, container top, container stats, container port, container diff, network ls, network list, network inspect, volume ls, volume list, volume inspect, context ls, context show, context inspect, system df, system info, system events, manifest inspect, buildx ls, buildx version, buildx du, plugin ls, plugin inspect, node ls, node ps, service ls, service ps, service logs, service inspect, stack ls, stack ps, stack services, secret ls, config ls, builder du",
    ),
    row(
        "compose",
        "-f: -p: --file= --project-name= --profile= --env-file= --project-directory= --ansi= ^",
        Rule::Sub(COMPOSE),
        "may change containers and mounted files",
    ),
    row(
        "rm, rmi, prune, system prune, volume rm, volume prune, image rm, image prune, container rm, container prune, builder prune, network prune, network rm",
        "*",
        Rule::Destroys,
        "removes containers, images or volumes",
    ),
];

const COMPOSE: &[Row] = &[
    looks("ps logs images ls top version port events stats"),
    row("config convert", "* >-o: >--output= ~--lock-image-digests", Rule::Reads, "only prints"),
];

const KUBECTL: &[Row] = &[
    looks(
        "get describe logs log explain api-resources api-versions version top options events wait",
    ),
    looks(
        "config view, config get-contexts, config current-context, config get-clusters, config get-users, auth can-i, auth whoami, rollout status, rollout history, cluster-info, plugin list",
    ),
    row("cluster-info dump,", "*", Rule::Unknown, "may write the dump to files"),
    row("delete drain scale apply replace patch edit", "*", Rule::Destroys, "changes a cluster"),
];

const TERRAFORM: &[Row] = &[
    looks("validate show output version providers graph"),
    looks(
        "state list, state show, state pull, workspace list, workspace show, providers schema, metadata functions",
    ),
    row(
        "fmt",
        "@ -no-color -recursive -diff %-check -list: -write:",
        Rule::Destroys,
        "rewrites files",
    ),
    row("destroy apply import", "*", Rule::Destroys, "changes infrastructure"),
];
