%% SPDX-License-Identifier: Apache-2.0
%% @doc All rules over one source: what is written differently, and what is left and why.
%%
%% The result is read again. It is refused if a form that could be read can not be read any more, or
%% if another run would change something.
-module(weft_migrate_rewrite).

-export([run/2, run/3, places/2]).
-export_type([result/0, change/0]).

%% Held: it would be rewritten, if other places of the name, lock, scope or group could be.
-type change() :: #{rule := weft_migrate_rule:name(), line := pos_integer(),
                    column := pos_integer(), text := binary(), reason => string(), held => true}.
%% Edits: the bytes of the old text that are others now, in order. All other bytes are the same.
-type result() :: #{file := file:filename_all(), before := binary(), bytes := binary(),
                    edits := [weft_migrate_edit:edit()], rewritten := [change()],
                    left := [change()]}.

-type rules() :: [{weft_migrate_rule:name(), weft_migrate_rule:rule()}].

%% @doc Each place by itself, whatever becomes of others.
-spec run(weft_migrate_source:source(), rules()) -> {ok, result()} | {error, string()}.
run(Source, Rules) ->
    run(Source, Rules, weft_migrate_names:stay([])).

%% @doc As far as names may move.
-spec run(weft_migrate_source:source(), rules(), weft_migrate_names:staying()) ->
          {ok, result()} | {error, string()}.
run(#{file := File, bytes := Bytes} = Source, Rules, Staying) ->
    {Edits, Rewritten, Left} = looked(Source, Rules, Staying),
    case weft_migrate_edit:splice(Bytes, Edits) of
        {ok, Edited} ->
            case checked(Source, Edited, Rules, Staying) of
                ok -> {ok, #{file => File, before => Bytes, bytes => Edited,
                             edits => lists:usort(Edits), rewritten => Rewritten, left => Left}};
                Error -> Error
            end;
        {error, {overlap, Byte}} ->
            {error, lists:concat(["two rules want to change byte ", Byte])}
    end.

%% @doc The places of names, locks, scopes and groups that rules leave or would edit. Nothing is
%% edited in a source that is refused. In one that says what names mean to others, those are not its
%% own.
-spec places(weft_migrate_source:source(), rules()) ->
          [{weft_migrate_names:kind(), weft_migrate_names:place()}].
places(#{file := File} = Source, Rules) ->
    {Answers, Meanings, _} = answers(Source, Rules, weft_migrate_names:stay([])),
    Known = known(Source),
    Found = [{Kind, {kind(Answer, Site), Named, File, maps:get(line, change(Rule, Site, Source))}}
             || {Rule, Site, Answer} <- Answers,
                {Kind, Named} <- weft_migrate_names:of_site(Rule, Site, Known)],
    Left = [{Kind, {left, any, File, Line}} || {Kind, Line} <- weft_migrate_names:of_unread(Source)]
        ++ [{Kind, Place}
            || {Kind, {left, Named, _, _} = Place} <- Found,
               {Kind, Named} =/= {names, any} orelse not lists:member(global, Meanings)],
    case [Place || {_, {Is, _, _, _}} = Place <- Found, Is =/= left] of
        [] -> Left;
        Edited ->
            case run(Source, Rules) of
                {ok, _} -> Left ++ Edited;
                {error, _} -> Left ++ [{Kind, setelement(1, Place, left)}
                                       || {Kind, Place} <- Edited]
            end
    end.

kind({edit, _, _}, Site) ->
    case weft_migrate_names:registers(Site) of
        true -> registered;
        false -> edited
    end;
kind({leave, _}, _Site) -> left;
kind({hold, _}, _Site) -> left.

looked(Source, Rules, Staying) ->
    {Answers, _, Of} = answers(Source, Rules, Staying),
    {lists:append([Edits || {_, _, {edit, Edits, _}} <- Answers]),
     [change(Name, Site, Source) || {Name, Site, {edit, _, _}} <- Answers],
     [left(Answer, change(Name, Site, Source))
      || {Name, Site, Answer} <- Answers, element(1, Answer) =/= edit] ++ unread(Source, Of)}.

left({leave, Reason}, Change) -> Change#{reason => Reason};
left({hold, Reason}, Change) -> Change#{reason => Reason, held => true}.

%% What the rules say of each site, in their order. A source that is the old module itself, or an
%% adaptor of it, stays.
answers(#{bytes := Bytes, encoding := Encoding} = Source, Rules, Staying) ->
    Own = own(Source),
    Of = [{Name, Rule} || {Name, Rule} <- Rules, not is_map(Rule)
                              orelse not lists:member(maps:get(old, Rule), Own)],
    Sites = weft_migrate_tree:sites(Source),
    Meanings = [Old || {_, #{old := Old} = Rule} <- Of,
                       lists:any(fun(Site) -> weft_migrate_api:says_meaning(Rule, Site) end,
                                 Sites)],
    Context = #{bytes => Bytes, encoding => Encoding, meanings => Meanings, taken => [],
                keys => weft_migrate_keys:of_tables(Sites),
                ordinary => weft_migrate_computed:ordinary(Sites)},
    Names = {known(Source), Staying},
    {Answers, _} = lists:foldl(fun(Site, Acc) -> site(Site, Of, Names, Context, Acc) end,
                               {[], #{}}, Sites),
    {lists:reverse(Answers), Meanings, Of}.

own(Source) -> words(module, Source) ++ words(migrates, Source).

%% Macros that can only be one atom in this file: they are defined once, as an atom or as ?MODULE.
known(#{forms := Forms} = Source) ->
    Own = maps:from_list([{'MODULE', Module} || [Module] <- [words(module, Source)]]),
    Defined = [{Name, Value}
               || #{tokens := [{'-', _, _, _, _}, {atom, define, _, _, _}, {'(', _, _, _, _},
                               {_, Name, _, _, _} | Value]} <- Forms],
    Undefined = words(undef, Source),
    maps:merge(maps:from_list([{Name, Atom} || {Name, Value} <- Defined,
                                               length(proplists:lookup_all(Name, Defined)) =:= 1,
                                               not lists:member(Name, Undefined),
                                               {ok, Atom} <- [value(Value, Own)]]), Own).

value([{',', _, _, _, _}, {atom, Atom, _, _, _}, {')', _, _, _, _} | _], _Own) -> {ok, Atom};
value([{',', _, _, _, _}, {'?', _, _, _, _}, {var, 'MODULE', _, _, _}, {')', _, _, _, _} | _],
      #{'MODULE' := Module}) -> {ok, Module};
value(_, _) -> error.

words(Attribute, #{forms := Forms}) ->
    [Name || #{tokens := [{'-', _, _, _, _}, {atom, Word, _, _, _}, {'(', _, _, _, _},
                          {Of, Name, _, _, _} | _]} <- Forms,
             Word =:= Attribute, Of =:= atom orelse Of =:= var].

site(#{form := #{byte := Key}} = Site, Rules, Names, Context0, Acc0) ->
    lists:foldl(
      fun({Name, Rule}, {Answers, Taken} = Acc) ->
              Context = Context0#{taken := maps:get(Key, Taken, [])},
              case as_names_may(Name, weft_migrate_rule:look(Rule, Site, Context), Site, Names) of
                  none -> Acc;
                  {edit, _, New} = Edit ->
                      {[{Name, Site, Edit} | Answers],
                       Taken#{Key => New ++ maps:get(Key, Taken, [])}};
                  Left ->
                      {[{Name, Site, Left} | Answers], Taken}
              end
      end, Acc0, Rules).

as_names_may(Rule, {edit, _, _} = Edit, Site, {Known, Staying}) ->
    weft_migrate_names:decided(Edit, weft_migrate_names:of_site(Rule, Site, Known), Staying);
as_names_may(_, Answer, _, _) ->
    Answer.

change(Rule, #{node := Node, form := #{at := At}}, Source) ->
    {Line, Column} = case weft_migrate_tree:place(Node) of
                         none -> At;
                         Place -> Place
                     end,
    #{rule => Rule, line => Line, column => Column,
      text => weft_migrate_source:line(Source, Line)}.

%% Words of old modules in forms that could not be read.
unread(#{forms := Forms} = Source, Rules) ->
    [#{rule => Name, line => Line, column => Column, reason => "its form could not be read",
       text => weft_migrate_source:line(Source, Line)}
     || #{tree := {error, _}, tokens := Tokens} <- Forms,
        {Name, #{old := Old}} <- Rules,
        {{atom, Word, {Line, Column}, _, _}, {':', _, _, _, _}} <- pairs(Tokens), Word =:= Old].

pairs([]) -> [];
pairs([_ | Rest] = Tokens) -> lists:zip(lists:droplast(Tokens), Rest).

checked(#{bytes := Bytes}, Bytes, _Rules, _Staying) ->
    ok;
checked(#{file := File, program := Program} = Source, Edited, Rules, Staying) ->
    Again = weft_migrate_source:in(weft_migrate_source:of_bytes(File, Edited), Program),
    case {readable(Again) =:= readable(Source), looked(Again, Rules, Staying)} of
        {false, _} -> {error, "the result could not be read; nothing is changed"};
        {true, {[], _, _}} -> ok;
        {true, _} -> {error, "another run would change more; nothing is changed"}
    end.

readable(#{forms := Forms}) ->
    [element(1, Tree) || #{tree := Tree} <- Forms].
