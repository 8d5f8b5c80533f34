//! What is compared: a few shell lines each, which see `$WT`, `$STORE`, `$ID` and `$BEFOREHAND`.

/// One of the two.
pub(crate) struct System {
    pub(crate) name: &'static str,
    /// Prints the id of a snapshot on its last line.
    pub(crate) snapshot: &'static str,
    pub(crate) restore: &'static str,
    pub(crate) list: &'static str,
}

/// Git's own commands, with an index of their own that stays warm; nothing is written if the tree
/// is the same as before.
pub(crate) const GIT: System = System {
    name: "git",
    snapshot: "export GIT_INDEX_FILE=$STORE/index
        [ -f $STORE/index ] || cp .git/index $STORE/index
        git add -A && tree=$(git write-tree) &&
        if [ \"$tree\" = \"$(cat $STORE/tree 2>/dev/null)\" ]; then cat $STORE/id
        else id=$(git commit-tree $tree -m s) && git update-ref refs/paired/$id $id &&
        echo $tree >$STORE/tree && echo $id | tee $STORE/id; fi",
    restore: "export GIT_INDEX_FILE=$STORE/index
        git add -A && git read-tree --reset -u $ID",
    list: "git for-each-ref --sort=-creatordate --count=50 refs/paired/",
};

/// A copy of everything, for a tree without a repository.
pub(crate) const COPY: System = System {
    name: "cp -a",
    snapshot: "cp -a $WT \"$STORE/copy\" && echo x",
    restore: "false",
    list: "false",
};

/// This very build.
pub(crate) const BEFOREHAND: System = System {
    name: "beforehand",
    snapshot: "$BEFOREHAND create",
    restore: "$BEFOREHAND restore $ID --yes --exact >$STORE/out",
    list: "$BEFOREHAND list --limit 50",
};
