#!/bin/sh
# Prints the home of a Java that Spark can run on (17 or newer), and installs one where that needs no question.
#
# Looked at in turn: JAVA_HOME, the java on PATH, the homes that HEADGATE_JVM_HOMES names (a list of patterns,
# separated by spaces), then the machine's package manager. Only the answer goes to standard output.
set -eu

least=17
homes=${HEADGATE_JVM_HOMES:-"/usr/lib/jvm/* /opt/java/* /opt/homebrew/opt/openjdk* /usr/local/opt/openjdk* /Library/Java/JavaVirtualMachines/*/Contents/Home"}

say() {
    printf '%s\n' "$*" >&2
}

# Prints the home of the java command $1 if it is new enough. Java is asked for its own home because the command
# may be a link or a launcher, and for its specification version because that is a plain number since Java 9.
home_of() {
    command -v "$1" >/dev/null 2>&1 || return 1
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    home='' version=0
    while read -r name equals value; do
        [ "$equals" = '=' ] || continue
        case $name in
            java.home) home=$value ;;
            java.specification.version) version=${value%%.*} ;;
        esac
    done <<EOF
$settings
EOF
    [ -n "$home" ] && [ "$version" -ge "$least" ] && printf '%s\n' "$home"
}

find_java() {
    if [ -n "${JAVA_HOME:-}" ] && home_of "$JAVA_HOME/bin/java"; then
        return 0
    fi
    home_of java && return 0
    for candidate in $homes; do
        home_of "$candidate/bin/java" && return 0
    done
    return 1
}

# The package manager of this machine, and the packages that hold Java: systems carry different releases of it.
manager=''
for name in apt-get dnf apk brew; do
    if command -v "$name" >/dev/null 2>&1; then
        manager=$name
        break
    fi
done
case $manager in
    apt-get) packages='openjdk-17-jre-headless openjdk-21-jre-headless openjdk-25-jre-headless' ;;
    dnf) packages='java-17-openjdk-headless java-21-openjdk-headless java-25-openjdk-headless' ;;
    apk) packages='openjdk17-jre-headless openjdk21-jre-headless' ;;
    brew) packages='openjdk@17 openjdk@21' ;;
    *) packages='' ;;
esac

# Puts into `rights` what must stand before the package manager's command; fails where this user may not install.
find_rights() {
    rights=''
    if [ "$manager" = brew ] || [ "$(id -u)" -eq 0 ]; then
        return 0
    fi
    rights='sudo -n'
    command -v sudo >/dev/null 2>&1 && sudo -n true >/dev/null 2>&1
}

install_one() {
    case $manager in
        apt-get) $rights env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" ;;
        dnf) $rights dnf install -y "$1" ;;
        apk) $rights apk add --no-cache "$1" ;;
        brew) brew install "$1" ;;
    esac
}

install_java() {
    if [ "$manager" = apt-get ]; then
        $rights apt-get update >&2 || true
    fi
    for package in $packages; do
        say "headgate: installing $package with $manager"
        if install_one "$package" >&2 && find_java; then
            return 0
        fi
    done
    return 1
}

# What a person would type to get Java here.
advice() {
    case $manager in
        apt-get) echo 'sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless' ;;
        dnf) echo 'sudo dnf install -y java-17-openjdk-headless' ;;
        apk) echo 'sudo apk add openjdk17-jre-headless' ;;
        brew) echo 'brew install openjdk@17' ;;
        *) echo "install a JRE from your system's vendor and set JAVA_HOME" ;;
    esac
}

find_java && exit 0
[ -n "$manager" ] && find_rights && install_java && exit 0
say "headgate: Spark needs Java $least or newer, and none was found. Type: $(advice)"
exit 1
